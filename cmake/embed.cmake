# embed(FILE NAME HEADER): makes a header with the file's text as `static const char NAME[]`.
function(embed file name header)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    file(READ ${file} hex HEX)
    string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
    file(CONFIGURE OUTPUT ${header} CONTENT "static const char ${name}[] = {${bytes}0};\n")
endfunction()
