//! HiGHS, through its C interface (feature `highs`). All unsafe code of the parent module is in
//! this file: [`Engine`] owns the pointer and exposes only numbers.
#![allow(unsafe_code)]

use std::any::Any;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::ptr::{null, null_mut};

use highs_sys as c;

use super::model::{Direction, Model, Row};
use super::solver::{IntegerOutcome, Linear, LinearOutcome, Solver, Status, Vertex};
use crate::progress::{LogEntry, Progress, ProgressSink};

/// HiGHS.
#[derive(Clone, Copy, Debug, Default)]
pub struct Highs;

impl Solver for Highs {
    fn name(&self) -> &'static str {
        "HiGHS"
    }

    fn relaxation(&self, model: &Model) -> Box<dyn Linear> {
        let mut engine = Engine::new(model, false);
        // Warm starts are the purpose, and presolve would drop the basis.
        engine.set_text(c"presolve", c"off");
        engine.set_text(c"solver", c"simplex");
        Box::new(engine)
    }

    fn optimise(
        &self,
        model: &Model,
        start: Option<&[bool]>,
        sink: &mut dyn ProgressSink,
    ) -> IntegerOutcome {
        let mut engine = Engine::new(model, true);
        engine.set_number(c"mip_rel_gap", 0.0);
        if let Some(start) = start {
            engine.set_start(start);
        }
        let status = engine.run(sink);
        let nodes =
            engine.integer_info(c"mip_node_count").and_then(|n| u64::try_from(n).ok()).unwrap_or(0);
        let bound = engine.number_info(c"mip_dual_bound").filter(|bound| bound.is_finite());
        if sink.log_interval().is_some() {
            sink.log(&LogEntry {
                nodes,
                bound,
                incumbent: engine
                    .has_point()
                    .then(|| engine.number_info(c"objective_function_value"))
                    .flatten(),
                lp_iterations: engine
                    .whole_info(c"simplex_iteration_count")
                    .and_then(|n| u64::try_from(n).ok()),
                cuts: None,
            });
        }
        IntegerOutcome {
            values: engine.has_point().then(|| engine.solution().values),
            bound,
            status,
            nodes,
        }
    }
}

/// A HiGHS instance with a model.
struct Engine {
    /// Created by `Highs_create`, not null, owned exclusively by this value.
    highs: *mut c_void,
    columns: usize,
    rows: usize,
}

/// The data that a HiGHS callback reaches through its user pointer.
struct CallbackState<'a> {
    sink: &'a mut dyn ProgressSink,
    /// True if the progress sink has requested a stop.
    stopped: bool,
    /// The number of nodes of the next entry of the log.
    next_entry: u64,
    /// A panic of the progress sink, held until HiGHS, which cannot unwind, has returned.
    panic: Option<Box<dyn Any + Send>>,
}

fn int(number: usize) -> c::HighsInt {
    c::HighsInt::try_from(number).expect("models have fewer than 2^31 rows, columns and terms")
}

impl Engine {
    fn new(model: &Model, integer: bool) -> Self {
        // SAFETY: takes no arguments; the result is checked below.
        let highs = unsafe { c::Highs_create() };
        assert!(!highs.is_null(), "HiGHS could not be created");
        let mut engine = Self { highs, columns: model.columns.len(), rows: model.rows.len() };
        engine.set_switch(c"output_flag", false);
        engine.set_whole(c"threads", 1);
        let costs: Vec<f64> = model.columns.iter().map(|column| column.cost as f64).collect();
        let bounds = |upper: bool| -> Vec<f64> {
            let pick = |(lower, high): (i64, i64)| if upper { high } else { lower };
            model.columns.iter().map(|column| pick(column.domain.bounds()) as f64).collect()
        };
        let (lower, upper) = (bounds(false), bounds(true));
        let (row_lower, row_upper): (Vec<f64>, Vec<f64>) =
            model.rows.iter().map(Row::bounds).unzip();
        let (mut starts, mut indices, mut values) = (Vec::new(), Vec::new(), Vec::new());
        for row in &model.rows {
            starts.push(int(indices.len()));
            indices.extend(row.terms.iter().map(|&(j, _)| int(j)));
            values.extend(row.terms.iter().map(|&(_, a)| a as f64));
        }
        let kind = if integer { c::kHighsVarTypeInteger } else { c::kHighsVarTypeContinuous };
        let kinds = vec![kind; model.columns.len()];
        let sense = match model.direction {
            Direction::Minimise => c::kHighsObjSenseMinimize,
            Direction::Maximise => c::kHighsObjSenseMaximize,
        };
        let (columns, rows, terms) = (int(engine.columns), int(engine.rows), int(indices.len()));
        // SAFETY: `highs` is valid; every array has the length passed to HiGHS: `columns` for
        // costs, bounds and kinds, `rows` for row bounds and starts, `terms` for indices and
        // values. HiGHS copies them all.
        let status = unsafe {
            let format = c::kHighsMatrixFormatRowwise;
            if integer {
                c::Highs_passMip(
                    highs,
                    columns,
                    rows,
                    terms,
                    format,
                    sense,
                    0.0,
                    costs.as_ptr(),
                    lower.as_ptr(),
                    upper.as_ptr(),
                    row_lower.as_ptr(),
                    row_upper.as_ptr(),
                    starts.as_ptr(),
                    indices.as_ptr(),
                    values.as_ptr(),
                    kinds.as_ptr(),
                )
            } else {
                c::Highs_passLp(
                    highs,
                    columns,
                    rows,
                    terms,
                    format,
                    sense,
                    0.0,
                    costs.as_ptr(),
                    lower.as_ptr(),
                    upper.as_ptr(),
                    row_lower.as_ptr(),
                    row_upper.as_ptr(),
                    starts.as_ptr(),
                    indices.as_ptr(),
                    values.as_ptr(),
                )
            }
        };
        assert_ne!(status, c::kHighsStatusError, "HiGHS rejected a well-formed model");
        engine
    }

    fn set_switch(&mut self, option: &CStr, on: bool) {
        // SAFETY: `highs` is valid, the name is NUL-terminated.
        unsafe { c::Highs_setBoolOptionValue(self.highs, option.as_ptr(), c::HighsInt::from(on)) };
    }

    fn set_whole(&mut self, option: &CStr, value: c::HighsInt) {
        // SAFETY: as above.
        unsafe { c::Highs_setIntOptionValue(self.highs, option.as_ptr(), value) };
    }

    fn set_number(&mut self, option: &CStr, value: f64) {
        // SAFETY: as above.
        unsafe { c::Highs_setDoubleOptionValue(self.highs, option.as_ptr(), value) };
    }

    fn set_text(&mut self, option: &CStr, value: &CStr) {
        // SAFETY: as above, and the value is NUL-terminated, too.
        unsafe { c::Highs_setStringOptionValue(self.highs, option.as_ptr(), value.as_ptr()) };
    }

    /// Sets a start point, which HiGHS validates itself.
    fn set_start(&mut self, start: &[bool]) {
        assert_eq!(start.len(), self.columns);
        let values: Vec<f64> = start.iter().map(|&on| f64::from(u8::from(on))).collect();
        // SAFETY: `values` has one value per column; null stands for omitted arrays.
        unsafe { c::Highs_setSolution(self.highs, values.as_ptr(), null(), null(), null()) };
    }

    fn run(&mut self, sink: &mut dyn ProgressSink) -> Status {
        let left = sink.time_left();
        if left.is_some_and(|left| left.is_zero()) || sink.report(&Progress::default()).is_break() {
            return Status::Stopped;
        }
        // HiGHS accumulates the time of all runs of an instance.
        // SAFETY: `highs` is valid.
        let spent = unsafe { c::Highs_getRunTime(self.highs) };
        self.set_number(
            c"time_limit",
            left.map_or(f64::INFINITY, |left| spent + left.as_secs_f64()),
        );
        let mut state = CallbackState { sink, stopped: false, next_entry: 0, panic: None };
        let user = (&raw mut state).cast::<c_void>();
        // SAFETY: `state` outlives the run, and is only accessed through `user` until the callback
        // is removed below; `callback` does not unwind. The run returns before anything else uses
        // `highs`.
        let status = unsafe {
            c::Highs_setCallback(self.highs, Some(callback), user);
            for kind in [c::kHighsCallbackSimplexInterrupt, c::kHighsCallbackMipInterrupt] {
                c::Highs_startCallback(self.highs, kind);
            }
            let status = c::Highs_run(self.highs);
            c::Highs_setCallback(self.highs, None, null_mut());
            status
        };
        if let Some(panic) = state.panic {
            resume_unwind(panic);
        }
        // SAFETY: `highs` is valid.
        let model_status = unsafe { c::Highs_getModelStatus(self.highs) };
        match model_status {
            _ if state.stopped => Status::Stopped,
            c::kHighsModelStatusOptimal | c::kHighsModelStatusModelEmpty => Status::Optimal,
            c::kHighsModelStatusInfeasible => Status::Infeasible,
            c::kHighsModelStatusTimeLimit | c::kHighsModelStatusInterrupt => Status::Stopped,
            other => Status::Failed(format!("status {status}, model status {other}")),
        }
    }

    fn integer_info(&self, name: &CStr) -> Option<i64> {
        let mut value = 0;
        // SAFETY: `highs` is valid, the name is NUL-terminated, `value` is only written to.
        let status =
            unsafe { c::Highs_getInt64InfoValue(self.highs, name.as_ptr(), &raw mut value) };
        (status == c::kHighsStatusOk).then_some(value)
    }

    fn whole_info(&self, name: &CStr) -> Option<c::HighsInt> {
        let mut value = 0;
        // SAFETY: as above.
        let status = unsafe { c::Highs_getIntInfoValue(self.highs, name.as_ptr(), &raw mut value) };
        (status == c::kHighsStatusOk).then_some(value)
    }

    fn number_info(&self, name: &CStr) -> Option<f64> {
        let mut value = 0.0;
        // SAFETY: as above.
        let status =
            unsafe { c::Highs_getDoubleInfoValue(self.highs, name.as_ptr(), &raw mut value) };
        (status == c::kHighsStatusOk).then_some(value)
    }

    fn has_point(&self) -> bool {
        self.whole_info(c"primal_solution_status") == Some(c::kHighsSolutionStatusFeasible)
    }

    fn solution(&self) -> Vertex {
        let (mut values, mut reduced) = (vec![0.0; self.columns], vec![0.0; self.columns]);
        let (mut activity, mut duals) = (vec![0.0; self.rows], vec![0.0; self.rows]);
        // SAFETY: the arrays have one value per column or one per row, as HiGHS expects.
        unsafe {
            c::Highs_getSolution(
                self.highs,
                values.as_mut_ptr(),
                reduced.as_mut_ptr(),
                activity.as_mut_ptr(),
                duals.as_mut_ptr(),
            );
        }
        let dual =
            self.whole_info(c"dual_solution_status") == Some(c::kHighsSolutionStatusFeasible);
        let objective = self.number_info(c"objective_function_value").unwrap_or(f64::NAN);
        Vertex { objective, values, duals: dual.then_some(duals) }
    }

    fn ray(&self) -> Option<Vec<f64>> {
        let (mut exists, mut ray) = (0, vec![0.0; self.rows]);
        // SAFETY: `ray` has one value per row, as HiGHS expects if there is a ray.
        let status = unsafe { c::Highs_getDualRay(self.highs, &raw mut exists, ray.as_mut_ptr()) };
        (status != c::kHighsStatusError && exists != 0).then_some(ray)
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        // SAFETY: `highs` is valid and is not used afterwards.
        unsafe { c::Highs_destroy(self.highs) };
    }
}

/// The callback that reports to the progress sink and stops HiGHS if the sink breaks.
///
/// # Safety
/// `user` points to a [`CallbackState`] that nothing else uses; `out` and `answer` are null or
/// owned by HiGHS.
unsafe extern "C" fn callback(
    kind: c_int,
    _message: *const c_char,
    out: *const c::HighsCallbackDataOut,
    answer: *mut c::HighsCallbackDataIn,
    user: *mut c_void,
) {
    // SAFETY: guaranteed by the caller for the duration of this call.
    let (state, out, answer) =
        unsafe { (user.cast::<CallbackState<'_>>().as_mut(), out.as_ref(), answer.as_mut()) };
    let (Some(state), Some(answer)) = (state, answer) else { return };
    let mut progress = Progress::default();
    if let Some(out) = out.filter(|_| kind == c::kHighsCallbackMipInterrupt) {
        progress.nodes = u64::try_from(out.mip_node_count).unwrap_or(0);
        progress.bound = Some(out.mip_dual_bound).filter(|bound| bound.is_finite());
    }
    let entry = out.filter(|_| kind == c::kHighsCallbackMipInterrupt).map(|out| LogEntry {
        nodes: progress.nodes,
        bound: progress.bound,
        // HiGHS writes 1e30 or an infinity as long as there is none.
        incumbent: Some(out.mip_primal_bound).filter(|value| value.abs() < 1e30),
        lp_iterations: None,
        cuts: None,
    });
    let entry = entry.filter(|entry| entry.nodes >= state.next_entry);
    if !state.stopped {
        let (sink, next) = (&mut state.sink, &mut state.next_entry);
        let report = || {
            if let (Some(entry), Some(interval)) = (&entry, sink.log_interval()) {
                *next = (entry.nodes / interval.max(1) + 1) * interval.max(1);
                sink.log(entry);
            }
            sink.report(&progress)
        };
        match catch_unwind(AssertUnwindSafe(report)) {
            Ok(ControlFlow::Continue(())) => {}
            Ok(ControlFlow::Break(())) => state.stopped = true,
            Err(panic) => {
                state.panic = Some(panic);
                state.stopped = true;
            }
        }
    }
    if state.stopped {
        answer.user_interrupt = 1;
    }
}

impl Linear for Engine {
    fn set_bounds(&mut self, column: usize, lower: f64, upper: f64) {
        assert!(column < self.columns);
        // SAFETY: `highs` is valid, the column exists.
        unsafe { c::Highs_changeColBounds(self.highs, int(column), lower, upper) };
    }

    fn set_cost(&mut self, column: usize, cost: f64) {
        assert!(column < self.columns);
        // SAFETY: as above.
        unsafe { c::Highs_changeColCost(self.highs, int(column), cost) };
    }

    fn add_row(&mut self, row: &Row) {
        assert!(row.terms.iter().all(|&(j, _)| j < self.columns));
        let (lower, upper) = row.bounds();
        let indices: Vec<c::HighsInt> = row.terms.iter().map(|&(j, _)| int(j)).collect();
        let values: Vec<f64> = row.terms.iter().map(|&(_, a)| a as f64).collect();
        let terms = int(indices.len());
        // SAFETY: both arrays have `terms` values, the columns exist.
        unsafe {
            c::Highs_addRow(self.highs, lower, upper, terms, indices.as_ptr(), values.as_ptr())
        };
        self.rows += 1;
    }

    fn add_column(&mut self, cost: f64, (lower, upper): (f64, f64), terms: &[(usize, f64)]) {
        assert!(terms.iter().all(|&(i, _)| i < self.rows));
        let indices: Vec<c::HighsInt> = terms.iter().map(|&(i, _)| int(i)).collect();
        let values: Vec<f64> = terms.iter().map(|&(_, a)| a).collect();
        let terms = int(indices.len());
        // SAFETY: both arrays have `terms` values, the rows exist.
        unsafe {
            c::Highs_addCol(
                self.highs,
                cost,
                lower,
                upper,
                terms,
                indices.as_ptr(),
                values.as_ptr(),
            );
        }
        self.columns += 1;
    }

    fn solve(&mut self, sink: &mut dyn ProgressSink) -> LinearOutcome {
        match self.run(sink) {
            Status::Optimal => LinearOutcome::Optimal(self.solution()),
            Status::Infeasible => LinearOutcome::Infeasible { ray: self.ray() },
            Status::Stopped => LinearOutcome::Stopped,
            Status::Failed(why) => LinearOutcome::Failed(why),
        }
    }
}
