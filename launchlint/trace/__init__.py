"""Findings beside a measurement: what a recording of PyTorch's profiler says was spent on their lines.

`events` reads the file, `order` sorts what was read without keeping it in memory, `code` knows which lines of a
function a recorded call can stand on, `sweep` walks the recording in time, `join` puts findings and figures together.
"""
