-- Which labels a task must have: JSON, keys with values or null for any; null: tasks with and without labels.

ALTER TABLE endpoints ADD COLUMN labels TEXT;
