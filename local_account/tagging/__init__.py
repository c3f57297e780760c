"""The Resource Groups Tagging API in pages, which MiniStack leaves out."""
