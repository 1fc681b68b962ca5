// The immediates of every kernel; what they mean is said in each. A struct, because
// HLSL's root constants are one.
struct Params {
    row: array<vec4<u32>, 7>,
}

var<immediate> params: Params;
