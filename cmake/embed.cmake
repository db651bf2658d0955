# embed(FILE NAME HEADER): makes a header with the file's text as `static const char NAME[]`.
function(embed file name header)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
    file(READ ${file} hex HEX)
    string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
    file(CONFIGURE OUTPUT ${header} CONTENT "static const char ${name}[] = {${bytes}0};\n")
endfunction()

# embed_script(NAME HEADER FILES...): the same for the files, one after the other, as `NAME_text`, and their
# SHA-1 in hexadecimal, by which Redis knows a script, as `NAME_sha`. A word that is no file is text.
function(embed_script name header)
    set(text "")
    foreach(part IN LISTS ARGN)
        if(EXISTS ${part})
            set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${part})
            file(READ ${part} part)
        endif()
        string(APPEND text "${part}")
    endforeach()
    string(SHA1 sha "${text}")
    string(HEX "${text}" hex)
    string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
    file(CONFIGURE OUTPUT ${header} CONTENT
        "static const char ${name}_text[] = {${bytes}0};\nstatic const char ${name}_sha[] = \"${sha}\";\n")
endfunction()
