"""Load the results of `node lab run -o DIR` into pandas.

    import tidepool_results as results
    runs = results.trials("DIR")        # a row for each flow of each trial, and for each run
    runs.groupby("cc")["goodput"].describe()
    means = results.summary("DIR")      # means with their 95 % intervals
    saw = results.samples("DIR", 0, 0)  # cwnd, RTT and so on of flow 0 of cell 0 over time

Swept parameters are columns, named as in the printed table. Without pandas, `rows` reads
the same files into lists of dictionaries.
"""

import csv
import json
import os

# These columns are text, even if it looks like a number.
_TEXTS = {"experiment", "hash", "flow", "label", "note", "settings", "metric", "unit", "clock"}


def _value(text):
    """Return a field as a number, a bool, None if it is empty, or else its text."""
    if text == "":
        return None
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def settings(directory):
    """Return the swept values of each cell: a list of dictionaries, indexed by cell."""
    with open(os.path.join(directory, "run.json"), encoding="utf-8") as file:
        cells = json.load(file)["cells"]
    names = {}
    for setting in (cells[0].get("set") or []) if cells else []:
        short = setting.get("name") or setting["key"].rsplit(".", 1)[-1]
        names.setdefault(short, []).append(setting["key"])
    return [
        {
            short if len(keys) == 1 else key: _value(setting["value"])
            for setting in cell.get("set") or []
            for short, keys in names.items()
            for key in keys
            if key == setting["key"]
        }
        for cell in cells
    ]


def rows(directory, file):
    """Return the rows of a CSV file of a directory of results as dictionaries.

    Rows of `trials.csv` and `summary.csv` have the swept values of their cell, too.
    """
    path = os.path.join(directory, file)
    with open(path, newline="", encoding="utf-8") as text:
        found = [
            {k: (v or None) if k in _TEXTS else _value(v) for k, v in row.items()}
            for row in csv.DictReader(text)
        ]
    if found and "cell" in found[0]:
        swept = settings(directory)
        found = [{**swept[row["cell"]], **row} for row in found]
    return found


def _frame(directory, file):
    import pandas

    return pandas.DataFrame(rows(directory, file))


def trials(directory):
    """Return `trials.csv`: a row for each flow of each trial, and one without a flow for each run."""
    return _frame(directory, "trials.csv")


def summary(directory):
    """Return `summary.csv`: a row for each metric of each flow of each cell."""
    return _frame(directory, "summary.csv")


def samples(directory, cell=0, flow=0, what=""):
    """Return a sender's record over time; what is "", "segments" or "progress"."""
    suffix = "-" + what if what else ""
    return _frame(directory, os.path.join("flows", "%d-%d%s.csv" % (cell, flow, suffix)))


def links(directory):
    """Return the names of the links' files, for `rows`."""
    folder = os.path.join(directory, "links")
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    return [os.path.join("links", name) for name in names if name.endswith(".csv")]
