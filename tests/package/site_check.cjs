// Opens the site in Chromium, with playwright-core: `make docs-check`.
//
// Start page, a page of the gallery, of the API and a report at two widths, light and dark: no
// horizontal scrolling, no error of a script, no request that leaves this computer, every picture
// with an alternative text. Then all pages at the narrow width, and the search.
const fs = require("fs");
const http = require("http");
const path = require("path");
const { chromium } = require("playwright-core");

const root = path.resolve(process.argv[2]);
const pictures = path.join(root, "..", "screenshots");
const browserPath = process.env.CHROMIUM || "/usr/bin/chromium";
const widths = [1280, 400];
const pages = {
  start: "index.html",
  gallery: "generated/gallery/plot_03_trade_off.html",
  api: "generated/api/limes.BordersClassifier.html",
  report: "report.html",
};
const types = { ".html": "text/html", ".js": "text/javascript", ".css": "text/css", ".svg": "image/svg+xml", ".png": "image/png" };

function serve() {
  const server = http.createServer((request, response) => {
    const name = path.join(root, decodeURIComponent(new URL(request.url, "http://localhost").pathname));
    // A report names no icon of its own; browsers ask for one.
    if (request.url === "/favicon.ico") {
      response.writeHead(204).end();
      return;
    }
    if (!name.startsWith(root) || !fs.existsSync(name) || fs.statSync(name).isDirectory()) {
      response.writeHead(404).end();
      return;
    }
    response.writeHead(200, { "Content-Type": types[path.extname(name)] || "application/octet-stream" });
    fs.createReadStream(name).pipe(response);
  });
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(server)));
}

function listPages(folder) {
  return fs.readdirSync(folder, { withFileTypes: true }).flatMap((entry) => {
    const name = path.join(folder, entry.name);
    if (entry.isDirectory()) return entry.name.startsWith("_") ? [] : listPages(name);
    return name.endsWith(".html") ? [path.relative(root, name)] : [];
  });
}

async function openPage(browser, address, width, colorScheme, problems, label) {
  const page = await browser.newPage({ viewport: { width, height: 900 }, colorScheme });
  page.setDefaultTimeout(120000);
  page.on("pageerror", (error) => problems.push(`${label}: error of a script: ${error.message}`));
  page.on("console", (message) => {
    if (message.type() === "error") problems.push(`${label}: ${message.text()}`);
  });
  page.on("request", (request) => {
    const host = new URL(request.url()).hostname;
    if (!["127.0.0.1", ""].includes(host)) problems.push(`${label}: a request to ${host}`);
  });
  await page.goto(address, { waitUntil: "load" });
  return page;
}

async function findFaults(page) {
  return page.evaluate(() => {
    const faults = [];
    const { scrollWidth, clientWidth } = document.documentElement;
    if (scrollWidth > clientWidth) {
      const wide = [...document.querySelectorAll("body *")].filter(
        (element) => element.getBoundingClientRect().right > clientWidth + 1 && !element.closest("table, pre, .formula"),
      );
      const names = wide.slice(0, 3).map((element) => `${element.tagName} ${element.className}`);
      faults.push(`scrolls to ${scrollWidth} of ${clientWidth} pixels (${names.join("; ")})`);
    }
    for (const image of document.querySelectorAll("img")) {
      // The title of an example stands beside its small picture.
      if (!image.closest(".sphx-glr-thumbcontainer") && !(image.getAttribute("alt") || "").trim()) faults.push(`no alternative text: ${image.src.slice(-60)}`);
    }
    return faults;
  });
}

async function main() {
  fs.mkdirSync(pictures, { recursive: true });
  const server = await serve();
  const site = `http://127.0.0.1:${server.address().port}/`;
  const browser = await chromium.launch({ executablePath: browserPath, args: ["--no-sandbox"] });
  const problems = [];
  let checked = 0;
  for (const [name, address] of Object.entries(pages)) {
    for (const width of widths) {
      for (const scheme of ["light", "dark"]) {
        const label = `${name}, ${width} pixels, ${scheme}`;
        const page = await openPage(browser, site + address, width, scheme, problems, label);
        problems.push(...(await findFaults(page)).map((fault) => `${label}: ${fault}`));
        await page.screenshot({ path: path.join(pictures, `${name}-${width}-${scheme}.png`), fullPage: width === 400 });
        await page.close();
        checked += 1;
      }
    }
  }
  const all = listPages(root);
  const narrow = await openPage(browser, site + all[0], 400, "light", problems, "a page at 400 pixels");
  for (const address of all) {
    await narrow.goto(site + address, { waitUntil: "load" });
    problems.push(...(await findFaults(narrow)).map((fault) => `${address}: ${fault}`));
  }
  await narrow.close();
  const page = await openPage(browser, `${site}search.html?q=accelerate`, 1280, "light", problems, "search");
  await page.waitForSelector("#search-results li a").catch(() => {});
  const found = await page.$$eval("#search-results li a", (links) => links.map((link) => link.textContent.trim()));
  if (!found.some((title) => title.includes("limes.accelerate"))) {
    problems.push(`search: accelerate is not found among ${found.length} results: ${found.slice(0, 5)}`);
  }
  await page.screenshot({ path: path.join(pictures, "search.png") });
  await browser.close();
  server.close();
  problems.forEach((problem) => console.log(problem));
  console.log(`${checked} views, ${all.length} pages at 400 pixels, ${found.length} results for "accelerate": ${problems.length} problems.`);
  process.exit(problems.length ? 1 : 0);
}

main();
