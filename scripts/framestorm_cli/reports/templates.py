"""Pages from templates. jinja2 takes long to load: import this where a page is written."""

import jinja2


def environment(package: str, *, html: bool = True) -> jinja2.Environment:
    """Of the folder `templates` of a package. A name that a template is not given is an error. Without
    `html`, Markdown: nothing is escaped, and the last line keeps its end."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader(package),
        autoescape=html,
        keep_trailing_newline=not html,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
