"""The `tvsvm` command: one file a command, options shared by `options`."""
