// All of the workgroup memory that WebGPU guarantees, with units of 4 bytes.
const TILE: u32 = 64u;
