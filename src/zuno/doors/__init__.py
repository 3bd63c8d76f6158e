"""Front ends: command line, shell, Telegram, web page, MCP server, and the chat behind them."""
