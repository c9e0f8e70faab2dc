"""The report as one web page: what a page holds, its plots, and the page itself."""
