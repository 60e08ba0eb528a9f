"""Deliveries to addresses outside of the database: what pgaq notify is allowed to do, and how it does it."""
