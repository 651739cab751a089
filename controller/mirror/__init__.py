"""The reference central service: it keeps what the tables certify, and cosigns what it holds durably."""
