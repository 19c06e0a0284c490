//! Tests of counts: kernels, devices and decompositions against one naive oracle, and recovery
//! after crashes.

#[path = "../faults/mod.rs"]
mod faults;
#[path = "../support/mod.rs"]
mod support;

mod checkpoints_survive_crashes;
mod classical_methods_agree_with_the_oracle;
mod counts_resume_inside_units;
mod crashing_disk;
mod decomposition_is_exact;
mod device_faults_never_change_a_count;
mod kernel_faults_never_change_a_count;
mod kernels_agree_with_the_oracle;
mod mirror_images_have_the_same_counts;
mod partial_results_survive_crashes;
mod parts_add_up_to_the_count;
mod set_device_faults_never_change_a_count;
mod shaders_agree_with_the_oracle;
mod shaders_count_column_sets;
mod totals_equal_the_published_values;
