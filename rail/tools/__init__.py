"""What an agent's actions run on."""
