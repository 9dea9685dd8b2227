//! A step of the Levenberg–Marquardt method, with slopes from finite differences.

/// Change of a parameter's unbounded form by which the slope is measured.
const DIFFERENCE: f64 = 0.12;
/// Largest change of one parameter in a step.
const FURTHEST: f64 = 0.7;
/// Number of steps tried from the same slopes; the damping of each is `FACTOR` times that of the one before.
const TRIES: i32 = 5;
const FACTOR: f64 = 5.0;

/// Moves from `from` to a point with a smaller sum of squared distances, or stays there. Returns the point,
/// and what `of` returns beside the distances at that point. `caution` is the damping; the next call
/// continues with it.
pub(crate) fn step<T>(
    from: &[f64],
    caution: &mut f64,
    of: &mut impl FnMut(&[f64]) -> (Vec<f64>, T),
) -> (Vec<f64>, T) {
    let squares = |distances: &[f64]| -> f64 { distances.iter().map(|d| d * d).sum() };
    let (here, found) = of(from);
    let mut best = (squares(&here), from.to_vec(), found);
    let slopes: Vec<Vec<f64>> = (0..from.len())
        .map(|at| {
            let mut place = from.to_vec();
            place[at] += DIFFERENCE;
            let (there, found) = of(&place);
            let error = squares(&there);
            let slope = there.iter().zip(&here).map(|(t, h)| (t - h) / DIFFERENCE);
            let slope = slope.collect();
            if error < best.0 {
                best = (error, place, found);
            }
            slope
        })
        .collect();
    let mut is_better = false;
    for attempt in -1..TRIES - 1 {
        let damping = *caution * FACTOR.powi(attempt);
        let moved = solve(&slopes, &here, damping);
        let place: Vec<f64> = from
            .iter()
            .zip(moved)
            .map(|(from, by)| from + by.clamp(-FURTHEST, FURTHEST))
            .collect();
        let (there, found) = of(&place);
        let error = squares(&there);
        if error < best.0 {
            best = (error, place, found);
            is_better = true;
            *caution = damping;
        } else if is_better {
            break;
        }
    }
    if !is_better {
        *caution *= FACTOR;
    }
    *caution = caution.clamp(1e-3, 1e4);
    (best.1, best.2)
}

/// Solves the damped least-squares equations for the step.
fn solve(slopes: &[Vec<f64>], distances: &[f64], damping: f64) -> Vec<f64> {
    let product = |a: &[f64], b: &[f64]| -> f64 { a.iter().zip(b).map(|(a, b)| a * b).sum() };
    let n = slopes.len();
    let mut rows: Vec<Vec<f64>> = (0..n)
        .map(|row| {
            let mut cells: Vec<f64> = slopes.iter().map(|s| product(&slopes[row], s)).collect();
            cells[row] += damping * (cells[row] + 1.0);
            cells.push(-product(&slopes[row], distances));
            cells
        })
        .collect();
    // Gauss' elimination; the matrix is positive definite.
    for pivot in 0..n {
        let of_pivot = rows[pivot].clone();
        for row in rows.iter_mut().skip(pivot + 1) {
            let share = row[pivot] / of_pivot[pivot];
            row.iter_mut()
                .zip(&of_pivot)
                .for_each(|(cell, p)| *cell -= share * p);
        }
    }
    let mut moved = vec![0.0; n];
    for row in (0..n).rev() {
        let known: f64 = (row + 1..n).map(|k| rows[row][k] * moved[k]).sum();
        moved[row] = (rows[row][n] - known) / rows[row][row];
    }
    moved
}
