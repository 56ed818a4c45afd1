"""Files are written completely or not at all."""

import errno
import os
import resource
import signal
import subprocess
import sys
import textwrap

import pytest

from limes.atomic import atomic_paths, atomic_write, refuse_inputs_as_outputs


@pytest.fixture
def old(tmp_path):
    path = tmp_path / "model.limes"
    path.write_bytes(b"old")
    return path


def write(path, data=b"new"):
    with atomic_write(path) as stream:
        stream.write(data)


def test_a_new_file_replaces_the_old_one(old):
    write(old)
    assert old.read_bytes() == b"new"
    assert os.listdir(old.parent) == [old.name]


def test_a_full_disk_leaves_the_old_file_and_nothing_else(old):
    def pieces():
        yield b"ne"
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(OSError, match="No space left") as raised, atomic_write(old) as stream:
        stream.writelines(pieces())
    assert raised.value.filename == str(old)
    assert old.read_bytes() == b"old"
    assert os.listdir(old.parent) == [old.name]


def test_a_disk_that_is_full_at_synchronisation_leaves_the_old_file(old, monkeypatch):
    def fail(number):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="No space left"):
        write(old)
    assert old.read_bytes() == b"old"
    assert os.listdir(old.parent) == [old.name]


def test_a_limit_on_the_size_of_files_leaves_the_old_file(old):
    code = f"""
        import resource, signal
        from limes.atomic import atomic_write
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, {resource.RLIM_INFINITY}))
        with atomic_write({str(old)!r}) as stream:
            stream.write(bytes(1 << 20))
    """
    done = run(code)
    assert done.returncode == 1
    assert "File too large" in done.stderr
    assert old.read_bytes() == b"old"
    assert os.listdir(old.parent) == [old.name]


@pytest.mark.parametrize("point", ["while writing", "before renaming", "after renaming"])
def test_a_killed_writer_leaves_the_old_file_or_the_new_one(old, point):
    code = f"""
        import os, signal
        from pathlib import Path
        from limes.atomic import atomic_write
        def die(*args, **options):
            os.kill(os.getpid(), signal.SIGKILL)
        if {point!r} == "before renaming":
            Path.replace = die
        if {point!r} == "after renaming":
            Path.unlink = die
        with atomic_write({str(old)!r}) as stream:
            stream.write(b"ne")
            stream.flush()
            if {point!r} == "while writing":
                die()
            stream.write(b"w")
    """
    assert run(code).returncode == -signal.SIGKILL
    assert old.read_bytes() == (b"new" if point == "after renaming" else b"old")


def test_an_interrupt_leaves_nothing_behind(old):
    with pytest.raises(KeyboardInterrupt), atomic_write(old):
        raise KeyboardInterrupt
    assert os.listdir(old.parent) == [old.name]


def test_a_link_stays_a_link(old, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(old)
    write(link)
    assert link.is_symlink()
    assert old.read_bytes() == b"new"


def test_a_device_is_written_directly():
    done = run("""
        from limes.atomic import atomic_write
        with atomic_write("/dev/stdout") as stream:
            stream.write(b"new")
    """)
    assert done.stdout == "new"


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(IsADirectoryError):
        write(tmp_path)


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        write(tmp_path / "nowhere" / "model.limes")


def run(code):
    command = [sys.executable, "-c", textwrap.dedent(code)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_temporary_files_of_a_killed_run_are_removed_by_the_next(old):
    code = f"""
        import os, signal
        from limes.atomic import atomic_paths, atomic_write
        with atomic_write({str(old)!r}) as stream, atomic_paths({str(old)!r}) as [other]:
            other.write_text("half")
            other.with_name(other.name + ".aux.xml").write_text("half")
            os.kill(os.getpid(), signal.SIGKILL)
    """
    assert run(code).returncode == -signal.SIGKILL
    assert len(os.listdir(old.parent)) == 5
    other = old.parent / ".note.txt"
    other.write_text("not ours")
    run(f"""
        from limes.atomic import atomic_write
        with atomic_write({str(old.with_name("another"))!r}) as stream:
            stream.write(b"new")
    """)
    assert sorted(os.listdir(old.parent)) == [".note.txt", "another", old.name]


def test_temporary_files_of_a_running_process_stay(old):
    tidy = f"""
        from pathlib import Path
        from limes.atomic import remove_abandoned
        remove_abandoned(Path({str(old.parent)!r}))
    """
    with atomic_write(old) as stream, atomic_paths(old.with_name("map.tif")) as [temporary]:
        stream.write(b"new")
        temporary.write_bytes(b"map")
        assert run(tidy).returncode == 0
        assert len(os.listdir(old.parent)) == 4
    assert old.read_bytes() == b"new"
    assert old.with_name("map.tif").read_bytes() == b"map"
    assert len(os.listdir(old.parent)) == 2


@pytest.mark.parametrize("make", [os.link, os.symlink], ids=["hard link", "symbolic link"])
def test_a_link_to_an_input_is_refused_as_an_output(old, make):
    make(old, old.with_name("link"))
    with pytest.raises(ValueError, match="link is an input as well as an output"):
        refuse_inputs_as_outputs([old.with_name("link")], [old])


def test_two_outputs_of_one_name_are_refused(tmp_path):
    with pytest.raises(ValueError, match="is named for two outputs"):
        refuse_inputs_as_outputs([tmp_path / "a", tmp_path / ".." / tmp_path.name / "a"], [])


def test_devices_are_inputs_and_outputs_at_once():
    refuse_inputs_as_outputs(["/dev/null", "-"], ["/dev/null", "-"])
