"""Tools for those who write rules: scaffold a folder, bring generated tables up to date.

Not part of the installed package; run from a checkout as `python -m launchlint.dev`.
"""
