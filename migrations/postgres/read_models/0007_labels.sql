-- What tasks are labelled with, and by what they are found.

ALTER TABLE tasks ADD COLUMN labels TEXT; -- JSON object; null: none

-- Two rows for each label of a task: its key alone, and `key=value`, which no key can be.
CREATE TABLE task_labels (
    term        TEXT COLLATE "C" NOT NULL,
    task_no     BIGINT NOT NULL,  -- created_position of the task
    label_owner TEXT COLLATE "C", -- owner of the task; null: nobody
    PRIMARY KEY (task_no, term)
);

CREATE INDEX task_labels_term ON task_labels (term, (-task_no));
CREATE INDEX task_labels_owner ON task_labels (label_owner, term, (-task_no))
    WHERE label_owner IS NOT NULL;
