//! Parameters of a statement on PostgreSQL: one array for each column, whatever the number of rows,
//! and texts as PostgreSQL can hold them.
//!
//! A text of PostgreSQL holds every character but U+0000, which names, users and errors may hold.
//! [`storable`] writes U+0000 as U+0001 `0` and U+0001 as U+0001 `1`, and [`original`] reads it back:
//! nothing is lost, equal texts stay equal, different ones different, and the order by code points
//! is kept. JSON needs none of it: there both characters can only be escapes.

use crate::error::Error;
use crate::text::Text;
use sqlx::Arguments;
use sqlx::postgres::PgArguments;
use std::borrow::Cow;
use std::sync::Arc;
use uuid::Uuid;

const ONE_TYPE: &str = "all rows give a column values of one type";

/// Stands before the characters that are written as two.
const ESCAPE: char = '\u{1}';

/// The values of a statement, column by column. They are given row by row.
pub(crate) struct Columns {
    columns: Vec<Column>,
    /// Values in a row; unknown while the first and only row of a statement is given.
    width: Option<usize>,
    next: usize,
}

enum Column {
    Ints(Vec<Option<i64>>),
    Texts(Vec<Option<Text>>),
    Ids(Vec<Option<Uuid>>),
    Bytes(Vec<Option<Vec<u8>>>),
}

impl Columns {
    /// Columns for a single row.
    pub(crate) const fn single() -> Self {
        Self {
            columns: Vec::new(),
            width: None,
            next: 0,
        }
    }

    /// For rows of `width` values.
    pub(crate) const fn rows(width: usize) -> Self {
        Self {
            columns: Vec::new(),
            width: Some(width),
            next: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.columns.len()
    }

    /// The column of the next value; the first row makes it.
    fn next(&mut self, empty: impl FnOnce() -> Column) -> &mut Column {
        let at = self.next;
        self.next = match self.width {
            Some(width) => (at + 1) % width,
            None => at + 1,
        };
        if at == self.columns.len() {
            self.columns.push(empty());
        }
        &mut self.columns[at]
    }

    pub(crate) fn int(&mut self, value: Option<i64>) {
        match self.next(|| Column::Ints(Vec::new())) {
            Column::Ints(values) => values.push(value),
            Column::Texts(_) | Column::Ids(_) | Column::Bytes(_) => unreachable!("{ONE_TYPE}"),
        }
    }
    pub(crate) fn text(&mut self, value: Option<Text>) {
        match self.next(|| Column::Texts(Vec::new())) {
            Column::Texts(values) => values.push(value),
            Column::Ints(_) | Column::Ids(_) | Column::Bytes(_) => unreachable!("{ONE_TYPE}"),
        }
    }
    pub(crate) fn id(&mut self, value: Option<Uuid>) {
        match self.next(|| Column::Ids(Vec::new())) {
            Column::Ids(values) => values.push(value),
            Column::Ints(_) | Column::Texts(_) | Column::Bytes(_) => unreachable!("{ONE_TYPE}"),
        }
    }
    pub(crate) fn bytes(&mut self, value: Option<Vec<u8>>) {
        match self.next(|| Column::Bytes(Vec::new())) {
            Column::Bytes(values) => values.push(value),
            Column::Ints(_) | Column::Texts(_) | Column::Ids(_) => unreachable!("{ONE_TYPE}"),
        }
    }

    /// The values of one row, each by itself.
    pub(crate) fn into_single(self) -> Result<PgArguments, Error> {
        let mut args = PgArguments::default();
        for column in &self.columns {
            match column {
                Column::Ints(v) => args.add(v.first().copied().flatten()),
                Column::Texts(v) => args.add(v.first().and_then(Option::as_ref).map(Text::as_str)),
                Column::Ids(v) => args.add(
                    v.first()
                        .and_then(Option::as_ref)
                        .map(|id| id.as_bytes().as_slice()),
                ),
                Column::Bytes(v) => args.add(v.first().and_then(Option::as_deref)),
            }
            .map_err(unencodable)?;
        }
        Ok(args)
    }

    /// An array for each column.
    pub(crate) fn into_arrays(self) -> Result<PgArguments, Error> {
        let mut args = PgArguments::default();
        for column in &self.columns {
            match column {
                Column::Ints(values) => args.add(values.as_slice()),
                Column::Texts(values) => {
                    let texts: Vec<Option<&str>> = values
                        .iter()
                        .map(|v| v.as_ref().map(Text::as_str))
                        .collect();
                    args.add(texts)
                }
                Column::Ids(values) => {
                    let ids: Vec<Option<&[u8]>> = values
                        .iter()
                        .map(|v| v.as_ref().map(|id| id.as_bytes().as_slice()))
                        .collect();
                    args.add(ids)
                }
                Column::Bytes(values) => {
                    let bytes: Vec<Option<&[u8]>> = values.iter().map(Option::as_deref).collect();
                    args.add(bytes)
                }
            }
            .map_err(unencodable)?;
        }
        Ok(args)
    }
}

fn unencodable(error: sqlx::error::BoxDynError) -> Error {
    Error::Unavailable(sqlx::Error::Encode(error))
}

/// The text as it is stored. Cost: O(length).
pub(crate) fn storable(text: Arc<str>) -> Text {
    if !text.bytes().any(|b| b < 2) {
        return Text::Shared(text);
    }
    let mut stored = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        match c {
            '\0' => stored.extend([ESCAPE, '0']),
            ESCAPE => stored.extend([ESCAPE, '1']),
            c => stored.push(c),
        }
    }
    Text::Owned(stored)
}

/// The text of which `stored` was made.
pub(crate) fn original(stored: &str) -> Cow<'_, str> {
    if !stored.contains(ESCAPE) {
        return Cow::Borrowed(stored);
    }
    let mut text = String::with_capacity(stored.len());
    let mut rest = stored.chars();
    while let Some(c) = rest.next() {
        match c {
            ESCAPE => text.push(if rest.next() == Some('0') {
                '\0'
            } else {
                ESCAPE
            }),
            c => text.push(c),
        }
    }
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stored(text: &str) -> String {
        storable(Arc::from(text)).as_str().to_owned()
    }

    proptest! {
        #[test]
        fn a_text_is_stored_without_nul_and_comes_back(a in "[\0\u{1}\u{2}01a]{0,12}", b in "[\0\u{1}\u{2}01a]{0,12}") {
            prop_assert!(!stored(&a).contains('\0'));
            let kept = stored(&a);
            prop_assert_eq!(original(&kept), a.as_str());
            prop_assert_eq!(a.cmp(&b), stored(&a).cmp(&stored(&b)));
        }
    }
}
