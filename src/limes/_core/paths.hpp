// Names of a compiled path: LIMES_PATH, joined to a word or as a text.
#pragma once

#define LIMES_JOIN_(a, b) a##b
#define LIMES_JOIN(a, b) LIMES_JOIN_(a, b)
#define LIMES_TEXT_(a) #a
#define LIMES_TEXT(a) LIMES_TEXT_(a)
