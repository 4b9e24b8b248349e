"""New imports: where they go, and when they are not needed."""

from __future__ import annotations

import re

import pytest

from edited import at, code, edited
from pallas_fix.edits import AddImport, Replace
from pallas_fix.rewrite import RewriteError

PL = AddImport("jax.experimental", "pallas", "pl")
LINE = "from jax.experimental import pallas as pl\n"


@pytest.mark.parametrize(
    "marked",
    [
        f"import jax\n<{LINE}>\nA\n",
        f"import jax; import os  # kept\n<{LINE}>A\n",
        f"'Doc.'\n<\n{LINE}\n>A\n",
        f"'Doc.'; 0\n<\n{LINE}>\nA\n",
        f"# licence\n\n# about it\n<{LINE}\n>A\n",
        f"<{LINE}\n>def f(): A\n",
        f"from __future__ import annotations\n<\n{LINE}>\nA\n",
        f"import os\nos.x = 1\nimport jax\n<{LINE}>\ndef f(): A\n",
        f"import os\n<{LINE}>A\nimport jax\n",
        f"<{LINE}\n>try:\n    import x\nexcept ImportError: x = 0\nA\n",
        f"import jax\n<{LINE}>if TYPE_CHECKING:\n    {LINE}A\n",
        f"{LINE}A\n",
        "import jax.experimental.pallas as pl\nA\n",
        f"try:\n    {LINE}except ImportError: pl = None\nA\n",
        "A\nfrom jax.experimental import (\n    pallas as pl,\n)\n",
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_an_import_joins_the_others_unless_it_is_there(marked: str, newline: str) -> None:
    """The marks < and > stand around what is new."""
    marked = marked.replace("\n", newline)
    text = re.sub("<.*>", "", marked, flags=re.DOTALL)

    result = edited(text, PL, Replace(at(text, "A"), code("B")), PL)

    assert result == re.sub("[<>]", "", marked).replace("A" + newline, "B" + newline)


def test_a_module_of_a_docstring_gets_an_import() -> None:
    assert edited("'Doc.'\n", PL) == f"'Doc.'\n\n{LINE}"


@pytest.mark.parametrize(
    ("edit", "line"),
    [
        (AddImport("jax"), "import jax"),
        (AddImport("jax.numpy", alias="jnp"), "import jax.numpy as jnp"),
        (AddImport("jax", "lax"), "from jax import lax"),
        (AddImport("jax", "lax", "lax"), "from jax import lax"),
    ],
)
def test_the_form_of_an_import(edit: AddImport, line: str) -> None:
    assert edited("import os\n", edit) == f"import os\n{line}\n"


def test_a_name_that_is_taken_is_not_imported_over() -> None:
    with pytest.raises(RewriteError, match="`pl` is taken"):
        edited("import pylab as pl\n", PL)
