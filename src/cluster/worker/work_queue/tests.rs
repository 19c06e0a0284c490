use super::*;
use crate::board::{Piece, Problem};
use crate::cluster::campaign::SubRangeSet;
use crate::decomposition::{Job, Scheme};
use crate::executor::{Counter, DeviceLabel};
use crate::kernel::KernelKind;

const CPU: Counter = Counter::Cpu(KernelKind::Scalar);

fn decomposition(piece: Piece, n: usize) -> Arc<Decomposition> {
    let problem = Problem::empty(piece, n);
    let scheme = Scheme::best(&problem);
    Arc::new(Decomposition::new(Job::new(problem, scheme, None, 10).expect("a small board")))
}

fn lease(attempt: u64, decomposition: &Decomposition, units: std::ops::Range<u64>) -> Assignment {
    let job = decomposition.job().hash();
    let (sub_ranges, grant) = (SubRangeSet::default(), vec![7, attempt as u8]);
    Assignment { attempt, job, units, mirrored: false, not_kernel: None, sub_ranges, grant }
}

/// Returns a recount of some sub-ranges of a unit.
fn spot(attempt: u64, decomposition: &Decomposition, unit: u64) -> Assignment {
    let sub_ranges = SubRangeSet::from_numbers([1, 4]).expect("below 32");
    Assignment { mirrored: true, sub_ranges, ..lease(attempt, decomposition, unit..unit + 1) }
}

/// Returns the units of a batch, each with its lease.
fn units(batch: &Batch) -> Vec<(u64, u64)> {
    batch.units.iter().map(|LeasedUnit { lease, unit }| (lease.attempt, *unit)).collect()
}

fn queue() -> WorkQueue {
    queue_with(true)
}

fn queue_with(cpu_counts: bool) -> WorkQueue {
    let preference = KernelPreference::new(Some(KernelKind::Scalar)).expect("runs everywhere");
    WorkQueue::new(preference, 2, cpu_counts)
}

fn assign(queue: &WorkQueue, decomposition: &Arc<Decomposition>, lease: Assignment) {
    let attempt = lease.attempt;
    queue.assign([lease]);
    queue.set_decomposition(attempt, Ok(Arc::clone(decomposition)));
}

fn device() -> DeviceLabel {
    DeviceLabel { number: 7, id: "test-0".into(), name: "a device".into() }
}

/// Returns the held leases, each with its number of remaining units.
fn held(queue: &WorkQueue) -> Vec<(u64, u64)> {
    queue.report(100).held.iter().map(|held| (held.lease.attempt, held.left)).collect()
}

#[test]
fn a_lease_is_held_until_its_last_result_is_acknowledged() {
    let (queue, queens) = (queue(), decomposition(Piece::Queen, 9));
    assert!(queue.needs_work() && queue.is_empty());
    assign(&queue, &queens, lease(7, &queens, 2..4));
    assert!(!queue.needs_work());
    let first = queue.take_for_cpu().expect("a unit");
    assert_eq!((units(&first), first.kernels[0]), (vec![(7, 2)], KernelKind::Scalar));
    assert_eq!(first.units[0].lease.grant, [7, 7]);
    assert_eq!((held(&queue), queue.being_counted()), (vec![(7, 2)], 1));
    queue.finish(&first, &CPU, 0.5);
    let second = queue.take_for_cpu().expect("a unit");
    queue.finish(&second, &CPU, 0.5);
    assert_eq!(held(&queue), [(7, 2)]);
    let report = queue.report(100);
    assert_eq!(report.units_per_s, [(queens.job().hash(), 4.0)]);
    queue.acknowledge([(7, 2)]);
    assert!(queue.was_acknowledged());
    assert_eq!(held(&queue), [(7, 1)]);
    assert!(!queue.was_acknowledged());
    // Repeated acknowledgements and those of leases of an earlier run are ignored.
    queue.acknowledge([(7, 2), (1, 1)]);
    queue.acknowledge([(7, 3)]);
    assert!(queue.is_empty());
    assert_eq!(queue.counted(), UnitCounts { units: 2, recounts: 0 });
}

#[test]
fn a_resting_worker_finishes_started_units_and_gives_back_the_rest() {
    let (queue, queens) = (queue(), decomposition(Piece::Queen, 9));
    assign(&queue, &queens, lease(1, &queens, 0..3));
    assign(&queue, &queens, lease(2, &queens, 3..5));
    let begun = queue.take_for_cpu().expect("a unit");
    queue.rest(true);
    assert!(queue.is_urgent());
    let report = queue.report(100);
    assert_eq!((report.capacity, report.held.len(), report.held[0].left), (0, 1, 1));
    // Leases that arrive while resting are not accepted.
    assign(&queue, &queens, lease(3, &queens, 5..6));
    queue.finish(&begun, &CPU, 1.0);
    assert_eq!(held(&queue), [(1, 1)]);
    queue.acknowledge([(1, 0)]);
    assert!(queue.is_empty() && !queue.needs_work());
    queue.rest(false);
    assert!(queue.is_urgent() && queue.needs_work());
    assert_eq!(queue.report(100).capacity, 2);
}

#[test]
fn a_cancelled_lease_is_not_held_even_while_a_unit_of_it_is_counted() {
    let (queue, queens) = (queue(), decomposition(Piece::Queen, 9));
    assign(&queue, &queens, lease(1, &queens, 0..3));
    let begun = queue.take_for_cpu().expect("a unit");
    queue.cancel([1]);
    assert!(queue.is_empty());
    queue.finish(&begun, &CPU, 1.0);
    assert!(queue.is_empty());
    queue.give_back(&begun);
    assert!(queue.is_empty());
}

#[test]
fn an_excluded_kernel_is_not_used() {
    let (queue, queens) = (queue(), decomposition(Piece::Queen, 12));
    let not = |attempt, kernel: &str| Assignment {
        not_kernel: Some(kernel.to_owned()),
        mirrored: true,
        ..lease(attempt, &queens, 0..1)
    };
    assign(&queue, &queens, not(1, "scalar"));
    let batch = queue.take_for_cpu().expect("a unit");
    assert_eq!(batch.kernels[0], KernelKind::Generic);
    queue.finish(&batch, &CPU, 9.0);
    // A different kernel says nothing about the usual rate.
    assert_eq!((queue.report(9).units_per_s, queue.counted().recounts), (vec![], 1));
    // If there is no other kernel, the failure is reported to the coordinator.
    let rooks = decomposition(Piece::Rook, 12);
    let job = rooks.job().hash();
    let lease = Assignment { job, ..not(2, "generic") };
    assign(&queue, &rooks, lease);
    let failed = queue.next_failed().expect("it cannot be counted");
    assert_eq!(
        (failed.attempt, failed.unit, failed.reason),
        (2, UnitId { job, unit: 0 }, FailReason::Unsuited)
    );
    queue.pop_failed();
    assert_eq!((queue.next_failed(), held(&queue)), (None, vec![(1, 1)]));
}

#[test]
fn leases_of_invalid_jobs_or_units_are_given_back() {
    let (queue, queens) = (queue(), decomposition(Piece::Queen, 9));
    queue.assign([lease(1, &queens, 0..3), lease(2, &queens, 0..queens.units() + 1)]);
    queue.set_decomposition(1, Err("what is this".into()));
    queue.set_decomposition(2, Ok(Arc::clone(&queens)));
    for attempt in [1, 2] {
        let failed = queue.next_failed().expect("given up");
        assert_eq!((failed.attempt, failed.reason), (attempt, FailReason::Job));
        queue.pop_failed();
    }
    assert!(queue.is_empty());
}

#[test]
fn devices_take_many_units_of_one_image_and_the_cpu_takes_one() {
    let (queue, queens) = (queue(), decomposition(Piece::Queen, 9));
    let mut devices = [device()];
    queue.add_devices(&mut devices);
    assert_eq!(devices[0].number, 0);
    let image = Arc::new(queens.mirrored());
    assign(&queue, &queens, lease(1, &queens, 0..3));
    assign(&queue, &image, Assignment { mirrored: true, ..lease(2, &queens, 0..1) });
    assign(&queue, &queens, lease(3, &queens, 3..5));
    assert_eq!((queue.report(9).capacity, queue.report(9).kernels[0].as_str()), (3, SHADERS));
    let image = queue.take_for_device(0, |_, _, _| 100).expect("the recount");
    assert_eq!((units(&image), image.units[0].lease.mirrored), (vec![(2, 0)], true));
    let batch = queue.take_for_device(0, |_, _, open| {
        assert_eq!(open, 5);
        4
    });
    let batch = batch.expect("units");
    assert_eq!(units(&batch), [(1, 0), (1, 1), (1, 2), (3, 3)]);
    let rest = queue.take_for_cpu().expect("a unit");
    assert_eq!(units(&rest), [(3, 4)]);
    queue.give_back(&batch);
    let again = queue.take_for_device(0, |_, _, _| 100).expect("units");
    assert_eq!(units(&again), [(1, 0), (1, 1), (1, 2), (3, 3)]);
}

#[test]
fn the_cpu_counts_if_no_device_is_left() {
    let (queue, queens) = (queue_with(false), decomposition(Piece::Queen, 9));
    queue.add_devices(&mut [device()]);
    assert_eq!((queue.report(9).capacity, queue.report(9).kernels), (1, vec![SHADERS.to_owned()]));
    // No GPU counts toroidal queens.
    let toroidal = decomposition(Piece::Toroidal, 7);
    assign(&queue, &toroidal, lease(1, &toroidal, 0..1));
    assert_eq!(queue.next_failed().map(|failed| failed.reason), Some(FailReason::Unsuited));
    assign(&queue, &queens, lease(2, &queens, 0..2));
    let batch = queue.take_for_device(0, |_, _, _| 5).expect("units");
    queue.device_failed(0, "it was lost".into());
    queue.give_back(&batch);
    let unit = queue.take_for_cpu().expect("a unit");
    assert_eq!(units(&unit), [(2, 0)]);
    let report = queue.report(9);
    assert_eq!((report.capacity, report.devices[0].fault.as_deref()), (2, Some("it was lost")));
    assert!(report.kernels.iter().all(|kernel| kernel != SHADERS));
}

#[test]
fn recounts_precede_other_units_and_partial_ones_go_to_the_cpu() {
    let (queue, queens) = (queue(), decomposition(Piece::Queen, 11));
    let image = Arc::new(queens.mirrored());
    queue.add_devices(&mut [device()]);
    assign(&queue, &queens, lease(1, &queens, 0..9));
    assign(&queue, &image, spot(2, &queens, 9));
    assign(&queue, &image, Assignment { mirrored: true, ..lease(3, &queens, 10..11) });
    assign(&queue, &image, spot(4, &queens, 11));
    let by_device = queue.take_for_device(0, |_, _, _| 100).expect("units");
    assert_eq!(units(&by_device), [(3, 10)]);
    let recounts = [(); 2].map(|()| queue.take_for_cpu().expect("a unit"));
    assert_eq!(recounts.each_ref().map(units), [[(2, 9)], [(4, 11)]]);
    assert_eq!(units(&queue.take_for_cpu().expect("a unit")), [(1, 0)]);
    // Partial units say nothing about the rate of whole ones.
    queue.finish(&recounts[0], &CPU, 1.0);
    assert_eq!((queue.report(9).units_per_s, queue.counted().recounts), (vec![], 1));
    // If only a device counts, it also counts these, and everything of one image together.
    let alone = queue_with(false);
    alone.add_devices(&mut [device()]);
    for lease in [spot(1, &queens, 3), Assignment { mirrored: true, ..lease(2, &queens, 4..6) }] {
        assign(&alone, &image, lease);
    }
    let batch = alone.take_for_device(0, |_, _, _| 100).expect("units");
    assert_eq!(units(&batch), [(1, 3), (2, 4), (2, 5)]);
    let label = DeviceLabel { number: 0, id: "test-0".into(), name: String::new() };
    alone.finish(&batch, &Counter::Device(label), 1.0);
    assert_eq!(alone.report(9).units_per_s, []);
    // If that device is lost, such a recount goes to the CPU.
    assign(&alone, &image, spot(3, &queens, 6));
    alone.device_failed(0, "it was lost".into());
    assert_eq!(units(&alone.take_for_cpu().expect("a unit")), [(3, 6)]);
}

#[test]
fn invalid_sub_ranges_are_not_counted() {
    let (queue, queens) = (queue(), decomposition(Piece::Queen, 9));
    let image = Arc::new(queens.mirrored());
    let sub_ranges = SubRangeSet::from_numbers([31]).expect("below 32");
    assign(&queue, &image, Assignment { sub_ranges, ..spot(1, &queens, 0) });
    let failed = queue.next_failed().expect("a unit has 10 prefixes");
    assert_eq!((failed.attempt, failed.reason), (1, FailReason::Job));
    assert!(failed.detail.contains("has 10 sub-ranges"), "{}", failed.detail);
}

#[test]
fn only_units_not_started_are_dropped_when_a_lease_shrinks() {
    let (queue, queens) = (queue(), decomposition(Piece::Queen, 9));
    assign(&queue, &queens, lease(1, &queens, 2..8));
    assign(&queue, &queens, lease(2, &queens, 8..9));
    let begun = [(); 3].map(|()| queue.take_for_cpu().expect("a unit"));
    assert_eq!(begun.each_ref().map(units), [[(1, 2)], [(1, 3)], [(1, 4)]]);
    queue.finish(&begun[0], &CPU, 1.0);
    let (left, unstarted) = (queue.report(9).held[0].left, queue.report(9).held[0].unstarted);
    assert_eq!((left, unstarted), (6, 3));
    // The same range again changes nothing, nor does a range that has grown or starts
    // elsewhere.
    for same in [2..8, 2..20, 0..8] {
        queue.update([lease(1, &queens, same)]);
        assert_eq!(queue.report(9).held[0].lease.units, 2..8);
    }
    queue.update([
        Assignment { grant: vec![9], ..lease(1, &queens, 2..4) },
        lease(7, &queens, 0..1),
    ]);
    let report = queue.report(9);
    assert_eq!((report.held.len(), report.held[0].left, report.held[0].unstarted), (2, 3, 0));
    assert_eq!((&report.held[0].lease.units, &report.held[0].lease.grant[..]), (&(2..4), &[9][..]));
    // Units beyond the end that were started continue, and their results are kept until
    // acknowledged.
    queue.finish(&begun[2], &CPU, 1.0);
    // Unless they are given back.
    queue.give_back(&begun[1]);
    assert_eq!(units(&queue.take_for_cpu().expect("a unit")), [(1, 3)]);
    queue.acknowledge([(1, 2), (1, 4)]);
    assert_eq!(held(&queue), [(1, 1), (2, 1)]);
    // A lease without started units is no longer held.
    queue.update([lease(2, &queens, 8..8)]);
    assert_eq!(held(&queue), [(1, 1)]);
}

#[test]
fn a_queue_requests_work_before_its_threads_are_idle() {
    let (queue, queens) = (queue(), decomposition(Piece::Queen, 11));
    assign(&queue, &queens, lease(1, &queens, 0..12));
    let begun = queue.take_for_cpu().expect("a unit");
    assert!(!queue.needs_work(), "11 units wait, and their rate is unknown");
    // Two threads that take 0.1 s per unit: the waiting units last 0.55 s.
    queue.finish(&begun, &CPU, 0.1);
    assert!(!queue.needs_work());
    queue.take_for_cpu().expect("a unit");
    queue.take_for_cpu().expect("a unit");
    assert!(queue.needs_work(), "9 units wait");
    // The rate of another job is unknown.
    let other = decomposition(Piece::Queen, 10);
    assign(&queue, &other, lease(2, &other, 0..3));
    assert!(!queue.needs_work());
    queue.rest(true);
    assert!(!queue.needs_work());
}

#[test]
fn threads_end_when_the_queue_is_stopped_or_a_kernel_miscounts() {
    for stop in [WorkQueue::stop as fn(&WorkQueue), |queue| queue.mark_broken("2 + 2 = 5".into())] {
        let queue = queue();
        std::thread::scope(|scope| {
            let threads = [
                scope.spawn(|| queue.take_for_cpu().is_none()),
                scope.spawn(|| queue.take_for_device(0, |_, _, _| 1).is_none()),
                scope.spawn(|| !queue.wait_for_device_work()),
            ];
            stop(&queue);
            assert!(threads.into_iter().all(|thread| thread.join().expect("no panic")));
        });
        assert_eq!(queue.report(9).capacity, 0);
    }
}
