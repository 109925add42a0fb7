# SPDX-License-Identifier: MIT
"""Copies of the package, which `matrix`, `Tests/Mutants/mutants` and `Tests/Simulation/Plants/plants` build."""

import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent


def files():
    """Returns the contents of the tracked and the new files, and of Package.resolved, by name."""
    names = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=ROOT, check=True,
                           capture_output=True, text=True).stdout.split("\0")
    return {name: (ROOT / name).read_bytes() for name in [*names, "Package.resolved"] if (ROOT / name).is_file()}


def write(tree, contents):
    """Writes files into a directory, only those that differ, and deletes others, except build folders, .git and Package.resolved."""
    for name, content in contents.items():
        path = tree / name
        if not path.is_file() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
            path.chmod(0o755 if os.access(ROOT / name, os.X_OK) else 0o644)
    for directory, directories, names in os.walk(tree):
        directories[:] = [name for name in directories if name != ".git" and not name.startswith(".build")]
        for name in names:
            path = pathlib.Path(directory, name)
            if str(path.relative_to(tree)) not in contents and name != "Package.resolved":
                path.unlink()
