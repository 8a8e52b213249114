"""The editor server: findings, fixes and explanations while the line is being written, over the language server protocol."""
