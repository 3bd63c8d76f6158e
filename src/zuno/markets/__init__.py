"""What can be traded and where: venues by what they can do, markets by their rules, and how both are named."""
