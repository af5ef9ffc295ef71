-- JSON list of the agents of the broker for which a token speaks beside the name of its owner; null: no others.
ALTER TABLE tokens ADD COLUMN agents TEXT;
