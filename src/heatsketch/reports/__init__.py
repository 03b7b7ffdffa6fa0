"""Reports: one interactive page of HTML about an embedding.

`summary` says in lines what is known of an estimator; `facts` collects what a report shows, with
`frames`, the points at other times, and `columns`, what they are coloured by; `writer` puts the
facts into the page (report.html, report.css, and the scripts scatter.js, charts.js, report.js).
"""

from heatsketch.reports.writer import Report, report

__all__ = ["Report", "report"]
