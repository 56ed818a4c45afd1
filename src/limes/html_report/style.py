"""What the page looks like."""

PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>$title</title>
<style>
  body { margin: 0; background: #f4f5f8; color: #1a1a2e;
         font: 16px/1.5 system-ui, "Segoe UI", "Liberation Sans", sans-serif; }
  main { max-width: 62rem; margin: 0 auto; padding: 2rem 1.25rem 3rem; }
  h1 { font-size: 1.9rem; margin: 0 0 .25rem; }
  h2 { font-size: 1.15rem; margin: 0 0 .9rem; }
  .lead { margin: 0 0 1.5rem; color: #4a4a60; }
  section { background: #fff; border-radius: 10px; padding: 1.3rem 1.5rem; margin: 0 0 1.25rem;
            box-shadow: 0 1px 3px rgba(20, 20, 50, .12); overflow-x: auto; }
  .cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(9.5rem, 1fr)); gap: 1rem;
           background: none; box-shadow: none; padding: 0; }
  .card { background: #fff; border-radius: 10px; padding: 1rem 1.2rem;
          box-shadow: 0 1px 3px rgba(20, 20, 50, .12); }
  .card strong { display: block; font-size: 1.8rem; line-height: 1.2; color: #005aa0; }
  .card span { color: #4a4a60; font-size: .9rem; }
  table { border-collapse: collapse; font-variant-numeric: tabular-nums; }
  th, td { padding: .4rem .9rem; text-align: right; }
  thead th { border-bottom: 2px solid #d5d8e2; }
  tbody th { text-align: left; font-weight: 500; }
  .confusion th, .confusion td { padding: .35rem .55rem; }
  .confusion tbody th { font-weight: 700; text-align: right; }
  .confusion td { min-width: 2rem; border: 1px solid #e6e8ef; }
  .confusion thead td { border: none; }
  .pair { display: flex; flex-wrap: wrap; gap: 2rem; }
  .pair img { max-width: min(100%, 27rem); }
  figure { margin: 0; }
  figcaption { font-weight: 600; margin-bottom: .5rem; }
  img { max-width: 100%; height: auto; display: block; }
  .note { color: #4a4a60; font-size: .9rem; margin: .9rem 0 0; max-width: 48rem; }
  footer { color: #4a4a60; font-size: .85rem; }
</style>
</head>
<body>
<main>
<h1>$title</h1>
<p class="lead">$lead</p>
$sections
<footer>Made by limes $version. This page needs no network.</footer>
</main>
</body>
</html>
"""
