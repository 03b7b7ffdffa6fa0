"""What do the experiments of *Sketching the heat kernel* give, with the learned projection beside?

Run `heatsketch reproduce all -o DIR` first (about an hour on two cores), then
`python benchmarks/experiments.py DIR`: it writes docs/experiments.csv, the tables of
docs/experiments.md (between its markers) and docs/images/experiments/.
"""

import argparse
import csv
import re
import shutil
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
SIX = ("DMS", "DMB", "GPS", "GPB", "GPSBS", "GPSBB")
COLUMNS = ("figure", "method", "axis", "value", "trials", "mean", "std", "median")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("directory", type=Path, help="of heatsketch reproduce")
    directory = parser.parse_args().directory
    tables = {path.stem.removeprefix("figure-"): read(path) for path in directory.glob("*.csv")}
    tables = dict(sorted(tables.items()))
    write_csv(tables)
    page = DOCS / "experiments.md"
    text = page.read_text(encoding="utf-8")
    for name, rows in tables.items():
        text = insert(text, name, markdown(rows))
    page.write_text(text, encoding="utf-8")
    pictures = DOCS / "images" / "experiments"
    pictures.mkdir(parents=True, exist_ok=True)
    for path in directory.glob("figure-*.png"):
        shutil.copy(path, pictures / path.name)


def read(path):
    """Return the rows of a table of `heatsketch reproduce`, with the axis as a column."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    axis = "k" if "k" in rows[0] else "p"
    return [row | {"axis": axis, "value": int(row[axis])} for row in rows]


def write_csv(tables):
    with (DOCS / "experiments.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, extrasaction="ignore", lineterminator="\n")
        writer.writeheader()
        for name, rows in tables.items():
            writer.writerows(row | {"figure": name} for row in rows)


def markdown(rows):
    """Print mean ± standard deviation, a row for each k or p; the last column compares."""
    methods = list(dict.fromkeys(row["method"] for row in rows))
    values = sorted({row["value"] for row in rows})
    cell = {(row["method"], row["value"]): row for row in rows}
    compared = "ours" in methods and any(method in methods for method in SIX)
    header = [rows[0]["axis"], *methods, *(["ours / best of the paper's"] if compared else [])]
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    for value in values:
        found = [cell.get((method, value)) for method in methods]
        texts = [str(value), *(number(row) for row in found)]
        if compared:
            best = min(float(cell[m, value]["mean"]) for m in SIX if (m, value) in cell)
            texts.append(f"{float(cell['ours', value]['mean']) / best:.2f}")
        lines.append("| " + " | ".join(texts) + " |")
    return "\n".join(lines)


def number(row):
    if row is None:
        return ""
    mean, std = float(row["mean"]), float(row["std"])
    if mean < 0.005:
        return f"{mean:.1e}"
    return f"{mean:.2f}" if row["trials"] == "1" else f"{mean:.2f} ± {std:.2f}"


def insert(text, name, table):
    """Put the table between the markers of its name, where the page has them."""
    pattern = re.compile(rf"(<!-- table {name} -->\n).*?(<!-- end -->)", re.DOTALL)
    return pattern.sub(lambda found: f"{found[1]}{table}\n{found[2]}", text)


if __name__ == "__main__":
    main()
