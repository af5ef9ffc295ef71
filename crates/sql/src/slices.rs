//! Changes many rows a few at a time, so that other writers get their turn.

/// Repeats `one`, which changes at most `slice` rows and says how many, until it finds fewer. Returns how many in all.
///
/// # Errors
/// The first one; what was changed before stays so.
pub async fn in_slices<E, F>(slice: i64, mut one: impl FnMut() -> F) -> Result<u64, E>
where
    F: Future<Output = Result<u64, E>>,
{
    let mut all = 0;
    loop {
        let changed = one().await?;
        all += changed;
        if changed < slice.unsigned_abs() {
            return Ok(all);
        }
    }
}
