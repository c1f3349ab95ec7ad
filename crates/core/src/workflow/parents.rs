//! The ways to say what a component comes after: one name, or several in order.

/// One name or several: `"a"`, `["a", "b"]`, `("a", "b")`, a `Vec`.
pub trait IntoParents {
    /// Returns the names in order.
    fn into_parents(self) -> Vec<String>;
}

impl IntoParents for &str {
    fn into_parents(self) -> Vec<String> {
        vec![self.to_owned()]
    }
}

impl IntoParents for String {
    fn into_parents(self) -> Vec<String> {
        vec![self]
    }
}

impl<S: Into<String>, const N: usize> IntoParents for [S; N] {
    fn into_parents(self) -> Vec<String> {
        self.into_iter().map(Into::into).collect()
    }
}

impl<S: Into<String>> IntoParents for Vec<S> {
    fn into_parents(self) -> Vec<String> {
        self.into_iter().map(Into::into).collect()
    }
}

macro_rules! tuples {
    ($($Name:ident),+) => {
        impl<$($Name: Into<String>),+> IntoParents for ($($Name,)+) {
            #[expect(non_snake_case, reason = "the type's name is the variable's")]
            fn into_parents(self) -> Vec<String> {
                let ($($Name,)+) = self;
                vec![$($Name.into()),+]
            }
        }
    };
}

tuples!(A, B);
tuples!(A, B, C);
tuples!(A, B, C, D);
tuples!(A, B, C, D, E);
tuples!(A, B, C, D, E, F);
tuples!(A, B, C, D, E, F, G);
tuples!(A, B, C, D, E, F, G, H);
