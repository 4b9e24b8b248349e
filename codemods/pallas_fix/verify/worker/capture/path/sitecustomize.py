"""Begins the capture in every Python that a recorded command starts: its folder is on PYTHONPATH.

Then it steps aside for the `sitecustomize` that would have been imported without it. A Python that
is too old for the capture passes through here as well, so that this file is for any Python 3.
"""

import importlib
import importlib.util
import os
import sys


def _begin(folder):
    worker = os.path.dirname(os.path.dirname(folder))
    spec = importlib.util.spec_from_file_location(
        "_pallas_fix_worker",
        os.path.join(worker, "__init__.py"),
        submodule_search_locations=[worker],
    )
    package = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = package
    spec.loader.exec_module(package)
    importlib.import_module("_pallas_fix_worker.capture.begin").begin(
        os.environ["PALLAS_FIX_CAPTURE"]
    )


def _step_aside():
    own = sys.modules.pop(__name__)
    try:
        importlib.import_module(__name__)
    except ImportError as error:
        if error.name != __name__:
            raise
        sys.modules[__name__] = own


def _main():
    folder = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != folder]
    try:
        if sys.version_info >= (3, 11) and "PALLAS_FIX_CAPTURE" in os.environ:
            _begin(folder)
    finally:
        _step_aside()


_main()
