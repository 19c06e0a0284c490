// Metal has this header; nothing of it is needed.
