//! Translates every variant of the shaders for Direct3D (HLSL) and for Metal (MSL), as wgpu does on
//! Windows and macOS. Their compilers are not run.

#![cfg(test)]

use naga::back::{PipelineConstants, hlsl, msl, pipeline_constants::process_overrides};
use naga::valid::{Capabilities, ValidationFlags, Validator};
use naga::{ShaderStage, proc::BoundsCheckPolicies};

const SCHEDULE: &str = include_str!("../../../shaders/schedule.wgsl");
const EXPAND: &str = include_str!("../../../shaders/expand.wgsl");
const SEARCH: &str = include_str!("../../../shaders/search.wgsl");
const COLUMN_SETS: &str = concat!(
    include_str!("../../../shaders/column_sets/memory.wgsl"),
    include_str!("../../../shaders/column_sets/lists.wgsl"),
    include_str!("../../../shaders/column_sets/programs.wgsl"),
    include_str!("../../../shaders/column_sets/planes.wgsl"),
    include_str!("../../../shaders/column_sets/counts.wgsl"),
    include_str!("../../../shaders/column_sets/steps.wgsl"),
);

/// Returns the values of each constant, in all combinations.
fn combinations(constants: &[(&str, &[f64])]) -> Vec<PipelineConstants> {
    let mut all = vec![PipelineConstants::default()];
    for (name, values) in constants {
        all = all
            .iter()
            .flat_map(|chosen| {
                values.iter().map(move |&value| {
                    let mut chosen = chosen.clone();
                    chosen.insert((*name).to_owned(), value);
                    chosen
                })
            })
            .collect();
    }
    all
}

/// Returns every shader with its entry point and its constants.
fn variants() -> Vec<(&'static str, &'static str, PipelineConstants)> {
    let depths: Vec<f64> = (1..=16).map(f64::from).collect();
    let switch = [0.0, 1.0];
    let search = combinations(&[
        ("DEPTH", &depths),
        ("GATED", &switch),
        ("GENERAL", &switch),
        ("LOOK_AHEAD", &switch),
    ]);
    let column_sets = combinations(&[("LANES", &[32.0, 64.0]), ("MASK_PLANES", &[20.0, 24.0, 28.0])]);
    let mut all = vec![
        (SCHEDULE, "schedule", PipelineConstants::default()),
        (EXPAND, "expand", PipelineConstants::default()),
    ];
    all.extend(search.into_iter().map(|constants| (SEARCH, "search", constants)));
    all.extend(column_sets.into_iter().map(|constants| (COLUMN_SETS, "count_sets", constants)));
    all
}

/// Calls `translate` with each variant, its overrides replaced by their values.
fn each_variant(
    translate: impl Fn(&naga::Module, &naga::valid::ModuleInfo, &'static str) -> Result<String, String>,
) {
    let variants = variants();
    assert_eq!(variants.len(), 2 + 16 * 8 + 6);
    for (source, entry_point, constants) in variants {
        let module = naga::front::wgsl::parse_str(source).expect("WGSL");
        let mut validator = Validator::new(ValidationFlags::all(), Capabilities::all());
        let info = validator.validate(&module).expect("a valid module");
        let stage = Some((ShaderStage::Compute, entry_point));
        let (module, info) =
            process_overrides(&module, &info, stage, &constants).expect("constants that it has");
        let text = translate(&module, &info, entry_point)
            .unwrap_or_else(|error| panic!("{entry_point}, {constants:?}: {error}"));
        assert!(text.contains(entry_point), "{entry_point}, {constants:?}");
    }
}

#[test]
fn every_variant_is_translated_for_direct3d() {
    each_variant(|module, info, entry_point| {
        let options = hlsl::Options {
            shader_model: hlsl::ShaderModel::V6_0,
            fake_missing_bindings: true,
            ..hlsl::Options::default()
        };
        let pipeline = hlsl::PipelineOptions {
            entry_point: Some((ShaderStage::Compute, entry_point.to_owned())),
        };
        let mut text = String::new();
        hlsl::Writer::new(&mut text, &options, &pipeline)
            .write(module, info, None)
            .map_err(|error| error.to_string())?;
        Ok(text)
    });
}

#[test]
fn every_variant_is_translated_for_metal() {
    each_variant(|module, info, entry_point| {
        let options = msl::Options {
            lang_version: (2, 3),
            fake_missing_bindings: true,
            bounds_check_policies: BoundsCheckPolicies::default(),
            ..msl::Options::default()
        };
        let pipeline = msl::PipelineOptions {
            entry_point: Some((ShaderStage::Compute, entry_point.to_owned())),
            ..msl::PipelineOptions::default()
        };
        let (text, _) = msl::write_string(module, info, &options, &pipeline)
            .map_err(|error| error.to_string())?;
        Ok(text)
    });
}
