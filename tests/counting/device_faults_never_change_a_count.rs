//! Whatever fault a device has, it is disabled and its units are counted elsewhere: never a wrong
//! total, never a panic. The device is the mirror with injected faults.

use crate::faults::devices::{ALL, Failing, FailingDevice, batches_of_the_self_test};

use std::ops::ControlFlow;

use nqueens::board::{Piece, Problem};
use nqueens::decomposition::{Decomposition, Job, Scheme, Subproblems};
use nqueens::engine::{
    CountEvent, CountOptions, CountOutcome, CountTask, DeviceChoice, DeviceName,
};
use nqueens::kernel::gpu::{DeviceKernel, Fault};

fn problem() -> Problem {
    Problem::empty(Piece::Queen, 11)
}

/// Counts `problem` on these devices, on the CPU, or both. Returns the outcome and the notes.
pub(crate) fn count_on(
    problem: &Problem,
    subproblems: Option<Subproblems>,
    devices: Vec<DeviceKernel>,
    with_cpu: bool,
) -> (CountOutcome, Vec<String>) {
    let cpu = DeviceChoice::These(vec![DeviceName::Cpu]);
    let options = CountOptions { devices: cpu, subproblems, ..CountOptions::default() };
    let mut task = CountTask::plan(problem, &options).expect("plans");
    if !with_cpu {
        task.without_cpu();
    }
    for (number, device) in devices.into_iter().enumerate() {
        task.add_device(&format!("failing-{number}"), device);
    }
    let mut notes = Vec::new();
    let outcome = task.run(|event| {
        if let CountEvent::Note(note) = event {
            notes.push(note.to_owned());
        }
        ControlFlow::Continue(())
    });
    (outcome.expect("counts whatever the devices do"), notes)
}

/// Counts the [`problem`] like [`count_on`].
fn count(devices: Vec<DeviceKernel>, with_cpu: bool) -> (CountOutcome, Vec<String>) {
    count_on(&problem(), None, devices, with_cpu)
}

#[test]
fn a_sound_device_counts_alone() {
    let (outcome, notes) = count(vec![FailingDevice::kernel(Failing::No, 0)], false);
    assert_eq!((outcome.solutions, &outcome.kernel[..]), (2680, "wgsl"));
    assert_eq!(outcome.devices, ["failing-0"]);
    assert_eq!(notes, [""; 0]);
}

#[test]
fn every_fault_in_a_batch_is_detected() {
    let scheme = Scheme::best(&problem());
    let job = Job::new(problem(), scheme, None, 100).expect("a small board");
    let decomposition = Decomposition::new(job);
    let units: Vec<u64> = (0..decomposition.units()).collect();
    for failing in ALL.into_iter().filter(|&failing| failing != Failing::Panics) {
        // The second batch fails, so that stale results of the first can be returned.
        let mut kernel =
            FailingDevice::kernel(failing, if failing == Failing::OutOfMemory { 0 } else { 2 });
        let outcome = kernel.open(&decomposition).and_then(|mut job| job.count(&units, &|| true));
        let fault = outcome.expect_err(&format!("{failing:?} is noticed"));
        let expected = match failing {
            Failing::OutOfMemory => matches!(fault, Fault::OutOfMemory(_)),
            Failing::Lost => matches!(fault, Fault::Lost(_)),
            Failing::Hangs => matches!(fault, Fault::Hung(_)),
            Failing::FlipsABit | Failing::FlipsAShadowBit => {
                matches!(fault, Fault::Tally(_) | Fault::Miscounts(_))
            }
            _ => matches!(fault, Fault::Miscounts(_)),
        };
        assert!(expected, "{failing:?}: {fault}");
    }
}

#[test]
fn a_device_that_fails_its_self_test_counts_nothing() {
    for failing in ALL {
        let (outcome, notes) = count(vec![FailingDevice::kernel(failing, 0)], false);
        assert_eq!(outcome.solutions, 2680, "{failing:?}");
        assert_eq!(outcome.devices, ["cpu"], "{failing:?}");
        assert!(
            notes.iter().any(|note| note.contains("failing-0 is disabled")),
            "{failing:?}: {notes:?}"
        );
        assert!(
            notes.iter().any(|note| note.contains("counting on the CPU")),
            "{failing:?}: {notes:?}"
        );
    }
}

#[test]
fn a_device_that_fails_during_a_count_changes_no_total() {
    let sound = batches_of_the_self_test();
    for failing in ALL.into_iter().filter(|&failing| failing != Failing::OutOfMemory) {
        for with_cpu in [false, true] {
            let (outcome, notes) = count(vec![FailingDevice::kernel(failing, sound + 2)], with_cpu);
            assert_eq!(outcome.solutions, 2680, "{failing:?}, CPU: {with_cpu}");
            if !with_cpu {
                assert!(
                    outcome.devices.contains(&"cpu".to_owned()),
                    "{failing:?}: {:?}",
                    outcome.devices
                );
                let reported =
                    notes.iter().any(|note| note.contains("its units are counted elsewhere"));
                assert!(reported, "{failing:?}: {notes:?}");
            }
        }
    }
}

#[test]
fn a_sound_device_takes_over_the_units_of_a_failed_one() {
    let sound = batches_of_the_self_test();
    for failing in [Failing::Lost, Failing::ZeroSlots, Failing::LosesALowerState] {
        let devices =
            vec![FailingDevice::kernel(failing, sound + 1), FailingDevice::kernel(Failing::No, 0)];
        let (outcome, _) = count(devices, false);
        assert_eq!(outcome.solutions, 2680, "{failing:?}");
        assert!(!outcome.devices.contains(&"cpu".to_owned()), "{failing:?}: {:?}", outcome.devices);
    }
}
