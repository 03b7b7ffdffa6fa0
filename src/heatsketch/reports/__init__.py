"""Reports: one interactive page of HTML about an embedding.

`facts` has `report`, which collects what a page says, with frames, the points at other times, and a
description of an estimator in lines of text; `columns` has their colours. `writer` puts the facts
into the page (report.html, report.css, and the scripts).
"""

from heatsketch.reports.facts import report
from heatsketch.reports.writer import Report

__all__ = ["Report", "report"]
