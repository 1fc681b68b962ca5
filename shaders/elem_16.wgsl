alias Elem = vec4<u32>;
