"""Runs the Markdown cases of the rules: every case as written, in its variants, and with its fixes applied."""
