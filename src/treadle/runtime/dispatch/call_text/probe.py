"""A program to try calls with."""

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
"""
