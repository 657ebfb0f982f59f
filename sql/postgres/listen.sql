-- Subscribe this connection to a channel (written in as a quoted identifier). Params: none.
listen ^channel
