// Functions without a body need an assembly file in their package, even an empty one.
