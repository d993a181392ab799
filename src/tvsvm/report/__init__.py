"""The report: one HTML page that shows what a classifier found, without any network."""

from tvsvm.report.context import ReportContext
from tvsvm.report.page import write_report

__all__ = ["ReportContext", "write_report"]
