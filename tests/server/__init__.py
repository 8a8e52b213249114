"""The editor server, driven over standard input and output as an editor drives it."""
