// Moves units of 4, 8 or 16 bytes between any two strided layouts. With walk.wgsl
// one of elem_*.wgsl and items.wgsl; offsets and strides in units.

@group(0) @binding(0) var<storage, read_write> dst: array<Elem>;
@group(0) @binding(1) var<storage, read> src: array<Elem>;

fn convert(unit: Elem) -> Elem {
    return unit;
}
