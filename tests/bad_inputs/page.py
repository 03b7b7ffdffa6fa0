"""Write the tables of docs/bad-inputs.md from the cases: `python tests/bad_inputs/page.py`.

A table stands between `<!-- cases: name -->` and `<!-- end -->`; the rest of the page is by hand.
"""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from bad_inputs.cases import Case, row
from bad_inputs.test_affinities import MATRICES
from bad_inputs.test_points import UNUSABLE
from bad_inputs.test_scales import SCALES

PAGE = Path(__file__).parents[2] / "docs" / "bad-inputs.md"
TABLE = re.compile(r"(<!-- cases: (.+?) -->\n)(.*?)(<!-- end -->)", re.DOTALL)
TABLES: dict[str, list[Case]] = {"points": UNUSABLE, "scales": SCALES, "affinities": MATRICES}
HEAD = "| input | raised | message |\n| --- | --- | --- |\n"


def main() -> None:
    """Write the page anew."""
    text = PAGE.read_text(encoding="utf-8")
    text = TABLE.sub(lambda m: m[1] + HEAD + "".join(map(row, TABLES[m[2]])) + m[4], text)
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
