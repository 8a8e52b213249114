"""Tests of fixing: edits, rounds, patches, files on disk, and the rewrites of the rules, which are executed."""
