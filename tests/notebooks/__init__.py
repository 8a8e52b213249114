"""Notebooks: what is found in their cells, where it is said to be, and what a fix leaves alone."""
