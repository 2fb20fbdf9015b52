"""Folders of tables, worked through shard by shard: whole parts, journals of what is in hand, workers that may die."""
