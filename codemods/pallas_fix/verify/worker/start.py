"""The file that the worker's interpreter is given: loads this folder as a package and serves.

The folder never goes on `sys.path`, where its module names could stand before the user's.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys


def main() -> None:
    folder = os.path.dirname(os.path.abspath(__file__))
    spec = importlib.util.spec_from_file_location(
        "_pallas_fix_worker",
        os.path.join(folder, "__init__.py"),
        submodule_search_locations=[folder],
    )
    assert spec is not None
    assert spec.loader is not None
    package = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = package
    spec.loader.exec_module(package)
    importlib.import_module("_pallas_fix_worker.serve").serve(*sys.argv[1:])
    os._exit(0)  # there is nothing to save, and jax takes its time to leave


if __name__ == "__main__":
    main()
