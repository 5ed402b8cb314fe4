"""Programs to try calls with."""

PROBE = """
; a program of two float arrays of 4 elements: b = a + a; the state's first word is its status
define i64 @probe(ptr %state, ptr %frame) #0 {
  %a = load ptr, ptr %frame
  %b.p = getelementptr ptr, ptr %frame, i64 1
  %b = load ptr, ptr %b.p
  %v = load <4 x float>, ptr %a, align 4
  %s = fadd <4 x float> %v, %v
  store <4 x float> %s, ptr %b, align 4
  %status = load i64, ptr %state
  ret i64 %status
}

; for a double x, an int n and a variable v of 2 doubles: v[0] += x; gives n, x, x + n, n > 0,
; x + n*1j and an array of 1 double x
define i64 @probe_numbers(ptr %state, ptr %frame) #0 {
  %x.at = load ptr, ptr %frame
  %n.p = getelementptr ptr, ptr %frame, i64 1
  %n.at = load ptr, ptr %n.p
  %cell.p = getelementptr ptr, ptr %frame, i64 2
  %cell = load ptr, ptr %cell.p
  %v.at = load ptr, ptr %cell
  %x = load double, ptr %x.at
  %n = load i64, ptr %n.at
  %real = sitofp i64 %n to double
  %sum = fadd double %x, %real
  %v = load double, ptr %v.at
  %v.sum = fadd double %v, %x
  store double %v.sum, ptr %v.at
  %int.p = getelementptr ptr, ptr %frame, i64 3
  %int = load ptr, ptr %int.p
  store i64 %n, ptr %int
  %real.p = getelementptr ptr, ptr %frame, i64 4
  %real.at = load ptr, ptr %real.p
  store double %x, ptr %real.at
  %scalar.p = getelementptr ptr, ptr %frame, i64 5
  %scalar = load ptr, ptr %scalar.p
  store double %sum, ptr %scalar
  %bool.p = getelementptr ptr, ptr %frame, i64 6
  %bool = load ptr, ptr %bool.p
  %positive = icmp sgt i64 %n, 0
  %byte = zext i1 %positive to i8
  store i8 %byte, ptr %bool
  %complex.p = getelementptr ptr, ptr %frame, i64 7
  %complex = load ptr, ptr %complex.p
  store double %x, ptr %complex
  %imaginary = getelementptr double, ptr %complex, i64 1
  store double %real, ptr %imaginary
  %array.p = getelementptr ptr, ptr %frame, i64 8
  %array = load ptr, ptr %array.p
  store double %x, ptr %array
  %status = load i64, ptr %state
  ret i64 %status
}
"""
