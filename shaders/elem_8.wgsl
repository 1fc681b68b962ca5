alias Elem = vec2<u32>;
